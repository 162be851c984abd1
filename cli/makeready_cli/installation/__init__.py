"""The secrets of an installation: a folder of files that kustomize reads, its making, its rotation, and what of it is a
Secret of Kubernetes."""
