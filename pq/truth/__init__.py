"""The ring that evaluates and audits: it sees the data, and nothing here is private."""
