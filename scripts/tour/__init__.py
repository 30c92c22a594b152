"""`scripts/up --demo`: a scripted tour of a twin of a captured Kafka cluster, which checks everything that it shows."""
