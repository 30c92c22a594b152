"""How the log is agreed: PySyncObj's core, hardened. It moves opaque batches; no other package imports the library."""
