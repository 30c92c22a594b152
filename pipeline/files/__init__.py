"""Files of logs wherever they are: found, planned in ranges, read in chunks, followed as they grow."""
