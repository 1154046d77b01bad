"""Small LQNS text models for tests, and reading them in memory."""

from __future__ import annotations

from mup.lqn import Model
from mup.lqn.lqntext.grammar import parse_lqn_text
from mup.lqn.lqnx.importer import model_from_element

SHOP = """# a shop: 3 customers, a server with two threads, a disk
G "the shop, as \\"text\\"" 1e-05 50 10 0.9 -1
P 0
  p customers i
  p cpu s 0.1 m 2 R 2.5
  p disk f
-1
T 0
  t customer r buy -1 customers m 3 z 2
  t server h serve search -1 cpu 4 m 2
  t store n read -1 disk
-1
E 0
  s buy 0.5 -1
  y buy serve 1 -1
  y buy search 2.5 -1
  s serve 0.1 0.2 -1
  c serve 0.5 1 -1
  f serve 1 0 -1
  y serve read 2 0 -1
  z serve read 0 1.5 -1
  A search look
  s read 1e-2 -1
-1
A server
  s look 0.1
  s left 0.2
  s right 0.3
  s both 0
  y both read 1
  Z both 0.5
  :
  look -> left & right;
  left & right -> both;
  both[search]
-1
"""


def read_text(text: str) -> Model:
    """Read a text called t.lqn."""
    return model_from_element(parse_lqn_text(text, "t.lqn"), "t.lqn")


def one_server(
    entry: str = "s e 1 -1", *, task: str = "n", server: str = "", processor: str = "f", more: str = ""
) -> str:
    """Customers that call one entry of one task; the arguments are its records, options and processor."""
    return (
        f"P 0\np pc i\np ps {processor}\n-1\nT 0\nt c r go -1 pc m 3\nt s {task} e -1 ps {server}\n-1\n"
        f"E 0\ns go 1 -1\ny go e 1 -1\n{entry}\n-1\n{more}"
    )
