"""`quorate apply`, `quorate undo`, and the files of `--plan`: changes that were looked at before they are made."""
