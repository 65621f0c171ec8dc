"""Files signed by `ssh-keygen`, and everything that is no signature of theirs."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from store.samples import fill

from gnnperf.cli.main import run
from gnnperf.errors import InputError
from gnnperf.store import Store
from gnnperf.store.signatures import check_signature

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIKHbE+mODzHgtdnz/W4TkWJF4HKMUEAR/sxsXomT1XS colleague@example.org"
ANOTHER = (
    "ssh-ed25519 " + base64.b64encode(struct.pack(">I11sI32s", 11, b"ssh-ed25519", 32, bytes(32))).decode()
)
CONTENT = b"Not an export, but signed as one.\n"
SIGNED = """-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAggodsT6Y4PMeC12fP9bhORYkXgc
oxQQBH+zGxeiZPVdIAAAANZ25ucGVyZi1zdG9yZQAAAAAAAAAGc2hhNTEyAAAAUwAAAAtz
c2gtZWQyNTUxOQAAAEC9y82VN2C45Q15e/VWfYZ0kZPKtCzuw/sq8D0TJiqRPIpAC2+aVn
EPHKhw7lBOj7IlMDO4s8T1LSJ66Qt/i/8D
-----END SSH SIGNATURE-----
"""
SIGNED_FOR_GIT = """-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAggodsT6Y4PMeC12fP9bhORYkXgc
oxQQBH+zGxeiZPVdIAAAADZ2l0AAAAAAAAAAZzaGE1MTIAAABTAAAAC3NzaC1lZDI1NTE5
AAAAQDtv6NIG9imHgxJFSVNavosHHX54AEGpK1WpnmEpr+mDoygAp4f9V2cgfSZr5KubxA
0/h7yQYPDPFhopJ2EmWQg=
-----END SSH SIGNATURE-----
"""
"""What OpenSSH 9.2 wrote: `ssh-keygen -Y sign -n gnnperf-store`, and `-n git`."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(CONTENT)
    (tmp_path / "file.sig").write_text(SIGNED)
    (tmp_path / "keys").write_text(KEY + "\n")
    return tmp_path / "file"


def check(file: Path) -> str:
    return check_signature(file, file.with_name("keys"))


def test_a_signature_by_one_of_the_keys_tells_whose(file: Path) -> None:
    assert check(file) == "colleague@example.org"
    file.with_name("keys").write_text(f"\n{ANOTHER} someone else\n{KEY}\n")
    assert check(file) == "colleague@example.org"


def test_another_byte_is_another_file(file: Path) -> None:
    file.write_bytes(CONTENT + b" ")
    with pytest.raises(InputError, match="it is not what was signed in"):
        check(file)


@pytest.mark.parametrize("at", range(0, len(base64.b64decode("".join(SIGNED.split("\n")[1:-2]))), 3))
def test_no_flipped_bit_of_a_signature_passes(at: int, file: Path) -> None:
    blob = bytearray(base64.b64decode("".join(SIGNED.split("\n")[1:-2])))
    blob[at] ^= 1
    begin, end = SIGNED.split("\n")[0], SIGNED.split("\n")[-2]
    file.with_name("file.sig").write_text(f"{begin}\n{base64.b64encode(blob).decode()}\n{end}\n")
    with pytest.raises(InputError):
        check(file)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("file.sig", None, "file.sig: cannot be read: No such file"),
        ("file.sig", "", "expected what `ssh-keygen -Y sign` writes, got another file"),
        ("file.sig", SIGNED[:200] + SIGNED[-30:], "the signature is damaged; sign the file again"),
        ("file.sig", SIGNED_FOR_GIT, "expected a signature for gnnperf-store, got one for 'git'"),
        ("keys", None, "keys: cannot be read: No such file"),
        ("keys", "\n", "expected public keys, one a line, as `ssh-ed25519 KEY COMMENT`, got none"),
        ("keys", KEY[:40], "line 1: expected `ssh-ed25519 KEY COMMENT`, got 'ssh-ed25519 AAAA"),
        ("keys", KEY + "\nnonsense", "line 2: expected `ssh-ed25519 KEY COMMENT`, got 'nonsense'"),
        ("keys", ANOTHER, "expected a signature by a key of"),
        ("file", None, "file: cannot be read: No such file"),
    ],
)
def test_what_is_wrong_is_said(name: str, text: str | None, message: str, file: Path) -> None:
    path = file.with_name(name)
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError) as error:
        check(file)
    assert message in str(error.value)
    assert str(error.value).endswith("nothing was imported")


def test_import_takes_what_is_signed_and_nothing_else(
    store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fill(store, range(2))
    exported, keys, copy = tmp_path / "all.jsonl.zst", tmp_path / "keys", tmp_path / "copy"
    store.export(exported)
    keys.write_text(KEY)
    command = ["store", "import", str(copy), str(exported), "--trust", str(keys)]

    assert run(command) == 2
    assert "all.jsonl.zst.sig: cannot be read" in capfd.readouterr().err
    assert not copy.exists()

    private = Ed25519PrivateKey.generate()
    keys.write_bytes(private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    exported.with_name("all.jsonl.zst.sig").write_text(signed(exported, private))
    assert run([*command, "--json"]) == 0
    added = json.loads(capfd.readouterr().out)
    assert (added["nests"], added["records"], added["signed_by"]) == (2, 2, "line 1")

    assert run(["store", "import", str(copy), "--corpus", str(tmp_path), "--trust", str(keys)]) == 2
    assert "--trust: what is no exported file takes none" in capfd.readouterr().err


def signed(path: Path, private: Ed25519PrivateKey) -> str:
    """As `ssh-keygen -Y sign -n gnnperf-store` would."""

    def packed(*parts: bytes) -> bytes:
        return b"".join(struct.pack(">I", len(part)) + part for part in parts)

    digest = hashlib.sha512(path.read_bytes()).digest()
    signature = private.sign(b"SSHSIG" + packed(b"gnnperf-store", b"", b"sha512", digest))
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    blob = b"SSHSIG" + struct.pack(">I", 1) + packed(
        packed(b"ssh-ed25519", public), b"gnnperf-store", b"", b"sha512", packed(b"ssh-ed25519", signature)
    )  # fmt: skip
    begin, end = SIGNED.split("\n")[0], SIGNED.split("\n")[-2]
    return f"{begin}\n{base64.b64encode(blob).decode()}\n{end}\n"
