"""What is run on this project: set-up and checks, benchmarks, studies, the GPU check."""
