import { generateKeyPairSync, sign } from "node:crypto";

/** A key and the certificate that it signed for itself, as PEM. */
export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/** Node makes keys and signatures, but no certificates. This one has the least that TLS needs. */
export function makeCertificate(): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const name = der(0x30, der(0x31, der(0x30, COMMON_NAME, der(0x0c, Buffer.from("localhost")))));
  const validity = der(0x30, utcTime("200101000000Z"), utcTime("491231235959Z"));
  const spki = publicKey.export({ type: "spki", format: "der" });
  const serial = der(0x02, Buffer.from([1]));
  const body = der(0x30, serial, ECDSA_WITH_SHA256, name, validity, name, spki);
  const signature = der(0x03, Buffer.from([0]), sign("sha256", body, privateKey));
  const whole = der(0x30, body, ECDSA_WITH_SHA256, signature).toString("base64");
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${whole}\n-----END CERTIFICATE-----\n`,
  };
}

/** Object identifiers: 2.5.4.3, and an algorithm without parameters, 1.2.840.10045.4.3.2. */
const COMMON_NAME = Buffer.from("0603550403", "hex");
const ECDSA_WITH_SHA256 = Buffer.from("300a06082a8648ce3d040302", "hex");

function utcTime(text: string): Buffer {
  return der(0x17, Buffer.from(text));
}

/** Encodes a value of ASN.1 in the distinguished encoding (DER). */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const { length } = body;
  const size = length < 0x80 ? [length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
}
