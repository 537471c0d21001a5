"""The notebooks as source and as pages."""
