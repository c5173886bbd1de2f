#include "ops/math/products/einsum_equation.h"

#include <algorithm>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace headrace {
namespace {

// Letters and at most one ellipsis.
Status CheckSubscripts(StringView s) {
  if (std::count(s.begin(), s.end(), '.') > 1) {
    return InvalidArgument("Subscripts '", s,
                           "' have more than one ellipsis (...).");
  }
  for (char c : s) {
    // Upstream takes any printable character for a label, digits too.
    const bool printable = c > ' ' && c < 127 && c != ',' && c != '-';
    if (!printable) {
      return InvalidArgument("Invalid character in einsum subscripts: ", s);
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<EinsumEquation> EinsumEquation::Parse(StringView text) {
  // An ellipsis as one character, so that each character is a label.
  std::string s = absl::StrReplaceAll(text, {{" ", ""}, {"...", "."}});
  const std::vector<std::string> sides = absl::StrSplit(s, "->");
  if (sides.size() != 2) {
    return InvalidArgument("Expecting exactly one '->' in einsum equation: ",
                           text);
  }
  EinsumEquation e;
  e.inputs = absl::StrSplit(sides[0], ',');
  e.output = sides[1];
  if (e.inputs.size() > 2) {
    return InvalidArgument("Expecting 1 or 2 input subscripts in equation '",
                           text, "' but got: ", e.inputs.size());
  }
  for (const std::string& in : e.inputs) {
    HR_RETURN_IF_ERROR(CheckSubscripts(in));
  }
  HR_RETURN_IF_ERROR(CheckSubscripts(e.output));
  for (char c : e.output) {
    bool known = c == '.';
    for (const std::string& in : e.inputs) {
      known |= in.find(c) != std::string::npos;
    }
    if (!known) {
      return InvalidArgument("Output subscript '", std::string(1, c),
                             "' of einsum equation '", text,
                             "' is in no input");
    }
  }
  return e;
}

std::string EinsumEquation::Text(StringView subscripts) {
  return absl::StrReplaceAll(subscripts, {{".", "..."}});
}

StatusOr<Labels> LabelsOf(StringView subscripts, int rank, int which) {
  const bool has_ellipsis = subscripts.find('.') != StringView::npos;
  const int letters = static_cast<int>(subscripts.size()) - has_ellipsis;
  if (!has_ellipsis && letters != rank) {
    return InvalidArgument("Expected input ", which, " to have rank ", letters,
                           " but got: ", rank);
  }
  if (rank < letters) {
    return InvalidArgument("Expected input ", which, " to have rank at least ",
                           letters, " but got: ", rank);
  }
  return OutputLabels(subscripts, rank - letters);
}

Labels OutputLabels(StringView subscripts, int ellipsis) {
  Labels labels;
  for (char c : subscripts) {
    if (c != '.') {
      labels.push_back(static_cast<unsigned char>(c));
      continue;
    }
    // From the last, so that ellipses of different ranks align at their ends.
    for (int i = ellipsis; i-- > 0;) labels.push_back(kEllipsis + i);
  }
  return labels;
}

}  // namespace headrace
