"""`quorate up`, `node`, `format`, `drill`, `recover`: clusters made, run, broken on purpose, and rescued."""
