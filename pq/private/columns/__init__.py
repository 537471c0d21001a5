"""The one door through which records come in, whatever they are."""
