"""How the log is agreed: PySyncObj's core, hardened; it moves opaque batches and is the only importer of the library."""
