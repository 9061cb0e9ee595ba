"""What `deft-profile` runs inside a training job."""
