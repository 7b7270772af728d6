"""A certificate authority of one test, made at run time."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

import pytest


def authority(folder: Path, *names: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The context of a server with these names, and that of a client that trusts it."""
    x509 = pytest.importorskip("cryptography.x509", reason="no cryptography here, so no TLS in the tests")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(item) for item in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "server.pem"
    pem.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    of_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    of_server.load_cert_chain(pem)
    of_client = ssl.create_default_context(cadata=certificate.public_bytes(serialization.Encoding.PEM).decode())
    return of_server, of_client
