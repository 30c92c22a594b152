"""What a controller writes down beside the metadata log: who asked, what was refused, what changed."""
