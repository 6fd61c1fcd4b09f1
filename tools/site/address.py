"""Where a checkout's site is published: the pages address that its host gives to the repository of its git remote."""

from urllib.parse import urlsplit


def site(remote):
    """The address of the published site with a slash at its end, or None without a remote.

    GitHub serves ``owner/name`` at ``owner.github.io/name`` and ``owner/owner.github.io`` at the root; GitLab does the
    same with ``gitlab.io`` and keeps subgroups in the path.
    """
    if remote is None:
        return None
    owner, _, name = remote.repository.partition("/")
    host = f"{owner.lower()}.{remote.host.removesuffix('.com')}.io"
    return f"https://{host}/" if name.lower() == host else f"https://{host}/{name}/"


def prefix(remote):
    """The path under which the site lies on its host, a slash at both ends; without a remote the host's root."""
    return urlsplit(site(remote)).path if remote is not None else "/"
