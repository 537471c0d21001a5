"""`pq completion`: print what makes a shell complete the commands, options and choices of pq."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from pq.cli import EXIT_STATUS, Named, main, say

SHELLS = ("bash", "zsh", "fish")


@click.command(epilog=EXIT_STATUS)
@click.argument("shell", type=Named(SHELLS))
def completion(shell: str) -> None:
    """Print the completion of pq for a SHELL: bash, zsh or fish.

    For bash, add to ~/.bashrc the line: eval "$(pq completion bash)". For zsh, to ~/.zshrc the same with zsh. For fish:
    pq completion fish > ~/.config/fish/completions/pq.fish
    """
    made = get_completion_class(shell)
    assert made is not None
    say(made(main, {}, "pq", "_PQ_COMPLETE").source())
