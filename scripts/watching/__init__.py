"""Alert rules and a scrape config for Prometheus, and a dashboard for Grafana, as files that come with the package."""
