"""A certificate authority of one test, made at run time: for servers and for clients, good and bad ones."""

from __future__ import annotations

import datetime
import ssl
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NAME = "Tests' own authority"
_DAY = datetime.timedelta(days=1)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])


@dataclass
class Authority:
    """One authority; its files are in `folder`."""

    folder: Path
    name: str = NAME
    _key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    @property
    def ca_file(self) -> str:
        """The file with its certificate."""
        path = self.folder / f"{self.name.split()[-1]}.pem"
        own = self._signed(self._key, _name(self.name), self.name, 30, ca=True)
        path.write_bytes(own.public_bytes(serialization.Encoding.PEM))
        return str(path)

    def server(self, *hosts: str, days: int = 30, alone: bool = False, clients: bool = False) -> ssl.SSLContext:
        """The context of a server with these names; expired with negative days, self-signed if `alone`, and demanding a
        certificate of this authority from its clients.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pair(hosts[0], hosts=hosts, days=days, alone=alone))
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.ca_file)
        return context

    def pair(
        self, subject: str, *, hosts: tuple[str, ...] = (), days: int = 30, alone: bool = False, word: bytes = b""
    ) -> str:
        """The file with a certificate and its key, encrypted if there is a `word`."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = self._signed(key, _name(subject), subject if alone else self.name, days, hosts=hosts, alone=alone)
        locked = serialization.BestAvailableEncryption(word) if word else serialization.NoEncryption()
        path = self.folder / f"{subject}-{days}-{alone}.pem"
        path.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
            + made.public_bytes(serialization.Encoding.PEM)
        )
        return str(path)

    def _signed(
        self,
        key: Any,
        subject: x509.Name,
        issuer: str,
        days: int,
        *,
        hosts: tuple[str, ...] = (),
        ca: bool = False,
        alone: bool = False,
    ) -> x509.Certificate:
        end = datetime.datetime.now(datetime.UTC) + days * _DAY
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(_name(issuer))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(end - 60 * _DAY)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), False)
        return builder.sign(key if alone else self._key, hashes.SHA256())


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
