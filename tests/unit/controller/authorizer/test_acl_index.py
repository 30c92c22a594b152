"""The index of ACLs: made out of the one before, it is the one that would be made anew, and it shares the rest."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

from quorate.controller.authorizer.acl_index import AclIndex
from quorate.controller.authorizer.authorizer import Authorizer
from quorate.snapshots.image.image_parts import AclsImage
from tests.unit.controller.authorizer.acl_sets import acl, acls_image, entry


def test_index_of_the_same_acls_is_itself() -> None:
    acls = acls_image([acl()])
    index = AclIndex().following(acls)

    assert index.following(acls) is index
    asked = Authorizer(index)
    assert asked.following(acls) is asked


def test_acl_that_says_what_another_one_says_remains_when_that_goes() -> None:
    one, two, three = (entry(number, acl()) for number in range(3))
    acls = acls_image([])
    index = AclIndex()
    for kept in ([one, two, three], [two, three], [three], []):
        acls = AclsImage(acls.entries.changed({each.id: each for each in kept}, list(acls.entries)))
        index = index.following(acls)
        assert Authorizer(index).authorize("User:ana", "::1", "READ", "TOPIC", "orders") is bool(kept)
        assert index == AclIndex().following(acls)
    assert index == AclIndex()


def test_acl_that_is_replaced_under_its_id_is_the_new_one() -> None:
    first = entry(1, acl())
    acls = AclsImage(acls_image([]).entries.put(first.id, first))
    other = AclsImage(acls.entries.put(first.id, replace(first, resource_name="bills")))
    index = AclIndex().following(acls).following(other)

    asked = Authorizer(index)
    assert [asked.authorize("User:ana", "::1", "READ", "TOPIC", name) for name in ("orders", "bills")] == [False, True]
    assert index == AclIndex().following(other)


def test_one_change_among_many_acls_costs_no_rebuild() -> None:
    """A hundredth of a rebuild, where it is a thousandth: time on a machine that does other things too."""
    acls = acls_image(acl(f"topic-{n % 500}", who=f"User:u{n // 500}") for n in range(20_000))
    started = process_time()
    index = AclIndex().following(acls)
    whole = process_time() - started

    added = entry(1_000_000, acl("new"))
    changed = AclsImage(acls.entries.put(added.id, added))
    costs = []
    for _ in range(5):
        started = process_time()
        index.following(changed)
        costs.append(process_time() - started)
    assert min(costs) < whole / 100
