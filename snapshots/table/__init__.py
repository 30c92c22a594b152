"""The partition table: pages of columns, their editors, and rows as values."""
