"""A sharded key-value store on Quorate: see docs/sharded-kv.md."""
