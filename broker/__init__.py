"""Who obeys: the broker lifecycle, the metadata loader, publishers, and the rehearsal replica manager."""
