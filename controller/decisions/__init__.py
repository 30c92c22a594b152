"""What decisions are made of: their result, what they decide by, and who asked."""
