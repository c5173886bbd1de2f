#include "base/utf8.h"

namespace headrace {

int32_t Utf8Next(absl::string_view s, size_t* at) {
  const unsigned char lead = s[(*at)++];
  if (lead < 0x80) return lead;
  int more;
  int32_t c;
  if (lead >= 0xc2 && lead <= 0xdf) {
    more = 1;
    c = lead & 0x1f;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    more = 2;
    c = lead & 0x0f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    more = 3;
    c = lead & 0x07;
  } else {
    return -1;
  }
  for (int i = 0; i < more; ++i) {
    if (*at >= s.size()) return -1;
    const unsigned char b = s[*at];
    if ((b & 0xc0) != 0x80) return -1;
    // Overlong forms, surrogates and too large values show in the first two.
    if (i == 0 && ((lead == 0xe0 && b < 0xa0) || (lead == 0xed && b > 0x9f) ||
                   (lead == 0xf0 && b < 0x90) || (lead == 0xf4 && b > 0x8f))) {
      return -1;
    }
    c = c << 6 | (b & 0x3f);
    ++*at;
  }
  return c;
}

void Utf8Append(int32_t c, std::string* out) {
  if (c < 0x80) {
    *out += static_cast<char>(c);
  } else if (c < 0x800) {
    *out += static_cast<char>(0xc0 | c >> 6);
    *out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    *out += static_cast<char>(0xe0 | c >> 12);
    *out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    *out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    *out += static_cast<char>(0xf0 | c >> 18);
    *out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    *out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    *out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

}  // namespace headrace
