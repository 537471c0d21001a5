"""`python -m pq.cli`."""

from pq.cli import main

if __name__ == "__main__":
    main()
