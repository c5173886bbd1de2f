// XML as values: configurations, and other machines' answers.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace headrace {

struct XmlElement {
  std::string name;  // without its namespace's prefix
  std::string text;  // of its own, without blanks around it
  std::vector<XmlElement> children;

  // The first child of that name, or null.
  const XmlElement* Find(StringView name) const;
  // Its text; "" where there is none.
  StringView Text(StringView name) const;
};

// The outermost element. Attributes, comments and instructions are passed over.
// InvalidArgument with the place where it is no XML, has a document type (whose
// entities could grow without end) or nests deeper than 32.
StatusOr<XmlElement> ParseXml(StringView text);

}  // namespace headrace
