"""The workshop of the project, in the checkout only: experiments, pages, loaders of raw data."""
