"""PySyncObj's consensus core: checked, hardened, and what it is given as its journal."""
