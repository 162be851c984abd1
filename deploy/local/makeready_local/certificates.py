"""A certificate for receivers, and the authority that signed it: made at run time."""

import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


class Files(NamedTuple):
    """PEM files: the authority to trust, and the receiver's certificate and private key."""

    authority: Path
    certificate: Path
    key: Path


def made(folder: Path, *hosts: str, days: int = 1) -> Files:
    """Makes the files in the folder. days: how long they are valid."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Makeready demo authority")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
    usage = {"content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only"}
    signs = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        decipher_only=False,
        **dict.fromkeys(usage, False),
    )
    authority = (
        _certificate(authority_name, authority_name, authority_key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(signs, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    certificate = (
        _certificate(name, authority_name, key.public_key(), days)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    files = Files(folder / "authority.pem", folder / "receiver.pem", folder / "receiver.key")
    files.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.key.touch(mode=0o600)
    files.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


def _certificate(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + days * DAY)
    )
