"""The whole system in virtual time: controllers, brokers, admin clients and their HTTP, in one process."""
