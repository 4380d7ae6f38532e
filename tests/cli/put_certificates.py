#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""put_certificates.py MODEL.sig CERTIFICATE.pem...: puts certificates into a signature in place of the
key's digest, as `model_signing sign certificate` does. Of one that is named `sigstore:FILE` it makes
what that tool's own way leaves: a certificate without a chain."""
import base64
import json
import ssl
import sys


def der_of(path):
    with open(path, encoding="ascii") as file:
        text = file.read()
    begin = text.index("-----BEGIN CERTIFICATE-----")
    return base64.b64encode(ssl.PEM_cert_to_DER_cert(text[begin:].strip())).decode()


def main():
    signature, *paths = sys.argv[1:]
    with open(signature, encoding="utf-8") as file:
        bundle = json.load(file)
    if paths[0].startswith("sigstore:"):
        material = {"certificate": {"rawBytes": der_of(paths[0].partition(":")[2])}}
    else:
        made = [{"rawBytes": der_of(path)} for path in paths]
        material = {"x509CertificateChain": {"certificates": made}}
    bundle["verificationMaterial"] = {**material, "tlogEntries": []}
    with open(signature, "w", encoding="utf-8") as file:
        json.dump(bundle, file)


main()
