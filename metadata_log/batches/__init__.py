"""Record batches: built and taken apart, one record at a time or as columns."""
