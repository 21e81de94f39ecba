"""Completion in the shell: verbs, options, datasets, methods and their arguments, protocols, studies.

  bash: eval "$(multilab completion bash)"                       in ~/.bashrc
  zsh:  eval "$(multilab completion zsh)"                        in ~/.zshrc, after compinit
  fish: multilab completion fish > ~/.config/fish/completions/multilab.fish

The script calls `multilab completion candidates LINE` at every TAB, which reads file names and one YAML only.
"""

from multilab.commands.completion import SCRIPTS, CompletionError, candidates


def main(argv: list[str]) -> int:
    """`multilab completion bash|zsh|fish`."""
    if len(argv) == 2 and argv[0] == "candidates":
        print("\n".join(candidates(argv[1])))
        return 0
    if len(argv) != 1 or argv[0] not in SCRIPTS:
        raise CompletionError(f"expected: multilab completion {'|'.join(SCRIPTS)} (multilab completion --help)")
    print(SCRIPTS[argv[0]], end="")
    return 0
