// Keys and certificates for tests, made as they are asked for.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "serving/access/tls_file.h"

namespace headrace::serving {

struct TestCertificate {
  std::string key, cert;  // PEM
};

// Signed by itself, for two days.
inline TestCertificate MakeTestCertificate(const char* name) {
  const auto text = [](BIO* bio) {
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(bio, &bytes);
    std::string out(bytes, size);
    BIO_free(bio);
    return out;
  };
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* x = X509_new();
  X509_set_version(x, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
  X509_gmtime_adj(X509_getm_notBefore(x), -86400);
  X509_gmtime_adj(X509_getm_notAfter(x), 86400);
  X509_set_pubkey(x, key);
  X509_NAME* subject = X509_get_subject_name(x);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name), -1,
                             -1, 0);
  X509_set_issuer_name(x, subject);
  X509_sign(x, key, EVP_sha256());
  TestCertificate made;
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  made.key = text(bio);
  bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, x);
  made.cert = text(bio);
  X509_free(x);
  EVP_PKEY_free(key);
  return made;
}

inline TlsKeys TestKeys(const char* name = "localhost") {
  const TestCertificate made = MakeTestCertificate(name);
  TlsKeys keys;
  keys.server_key = made.key;
  keys.server_cert = made.cert;
  return keys;
}

}  // namespace headrace::serving
