"""The controllers' HTTP API: a route table, and what makes routes, an OpenAPI document and answers from it."""
