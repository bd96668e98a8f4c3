"""``sqb ls``: the selected nodes, parents first."""

from __future__ import annotations

from sqb.cli.call import Call
from sqb.cli.call import command as sqb_command


def ls(call: Call) -> None:
    """List nodes."""
    project = call.project()
    selected = project.select(call.select, call.exclude)
    nodes = [node for name, node in project.expected.items() if name in selected]
    out = call.out
    if out.json:
        out.document(
            {
                "schema_version": 1,
                "nodes": [
                    {
                        "name": n.name,
                        "type": n.type,
                        "path": n.path,
                        "internal": n.state_of is not None,
                    }
                    for n in nodes
                ],
            }
        )
        return
    if out.quiet:
        for node in nodes:
            out.important(node.name)
        return
    names = max((len(node.name) for node in nodes), default=0)
    types = max((len(node.type) for node in nodes), default=0)
    for node in nodes:
        place = node.path if node.state_of is None else f"row state of {node.state_of}"
        rest = f"{node.type:<{types}}  {place}"
        name = out.style(f"{node.name:<{names}}", dim=node.state_of is not None)
        out.important(f"{name}  {out.style(rest, dim=True)}")


command = sqb_command(
    "ls",
    help="List models and seeds, parents first; with -q their names alone.",
    example="""
sqb ls
sqb ls --select +fct_orders,tag:daily
""",
    hides=("verbose",),
)(ls)
