"""Deployment files: units of systemd, a container file and manifests of Kubernetes, and handing them out."""
