"""The platform on one machine: a job runs here as it would on a target, as far as that can be had.

target --(plan)--> Request, companions, what is simulated and what is not
request --> inside: namespaces, mounts, limits; becomes the job
request --> child: packages, paths and GPUs within the job's own Python
request --> watcher: memory and time, ended as the platform ends them
"""
