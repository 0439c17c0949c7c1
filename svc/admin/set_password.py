"""`svc admin set-password`: rotate a service password."""

from __future__ import annotations

from svc.admin.opening import add_word, open_as_owner, settings_of

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    import argparse

    from svc.cli.parser import Words

EXAMPLES = """\
sudo svc admin set-password root
sudo svc admin set-password demo < password.txt"""


def add_parser(words: Words) -> None:
    """Add the word `set-password`."""
    parser = add_word(words, "set-password", set_password, EXAMPLES)
    parser.add_argument("name", metavar="NAME", help="the account")


def set_password(args: argparse.Namespace) -> int:
    """Set the service password of an account (not the Linux password).

    Asked for twice on a terminal, else read from standard input. 8 to 64
    characters, 12 to 64 for root and superusers; common ones and guesses from
    the user's or the product's name are refused.
    """
    from svc.admin.operator import audited
    from svc.admin.password_input import read_password
    from svc.db.secret import read_secret
    from svc.domain import keys, passwords, users

    settings = settings_of(args)
    open_as_owner(settings)
    keys.use(read_secret(settings.secret_file))
    user = users.get(args.name)
    with audited("admin.set_password", user.name):
        password = passwords.check(
            read_password(user.name),
            user=user.name,
            display_name=user.display_name,
            superuser=bool(user.superuser),
        )
        users.set_password(user, passwords.hash_password(password, keys.secret()), len(password))
    print(f"the service password of {user.name} is set")
    return 0
