"""Agreement on the log: PySyncObj's core, hardened. It moves opaque batches; no other package imports the library."""
