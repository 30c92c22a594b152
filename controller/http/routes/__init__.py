"""The route table: a row for each method and path of the HTTP API."""
