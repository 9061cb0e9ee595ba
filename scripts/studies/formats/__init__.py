"""Do wire formats cost accuracy? A study with a protocol."""
