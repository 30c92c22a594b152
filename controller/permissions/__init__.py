"""The permissions of callers: what each route asks for, and what of a request or a list is left to whom."""
