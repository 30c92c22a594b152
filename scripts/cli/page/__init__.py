"""`quorate page`: the web page of a log in files."""
