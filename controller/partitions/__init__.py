"""The rules about partitions: leaders, ISRs, eligible replicas, and the decisions that apply them."""
