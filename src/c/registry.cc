// What ops there are, and how they are to be shown to users.
#include "op/registry.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_split.h"
#include "c/buffer.h"
#include "c/status.h"
#include "formats/proto_text.h"
#include "graph/attr_proto.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/core/framework/api_def.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"

struct TF_ApiDefMap {
  std::map<std::string, tensorflow::ApiDef> by_op;
  // Something was asked for: what is told may change no more.
  bool asked = false;
};

namespace headrace::capi {
namespace {

// Ops of the engine's own begin so, and are nobody else's.
bool IsPublic(const OpDef& op) { return op.name[0] != '_'; }

StatusOr<TF_Buffer*> AllOpDefs() {
  tensorflow::OpList list;
  for (const OpDef* op : AllOps()) {
    if (!IsPublic(*op)) continue;
    HR_RETURN_IF_ERROR(OpDefToProto(*op, list.add_op()));
  }
  return NewBuffer(list);
}

tensorflow::ApiDef ApiDefOf(const tensorflow::OpDef& op) {
  tensorflow::ApiDef api;
  api.set_graph_op_name(op.name());
  api.set_visibility(tensorflow::ApiDef::VISIBLE);
  auto* endpoint = api.add_endpoint();
  endpoint->set_name(op.name());
  const auto add_arg = [](const tensorflow::OpDef::ArgDef& from,
                          tensorflow::ApiDef::Arg* to) {
    to->set_name(from.name());
    to->set_rename_to(from.name());
    to->set_description(from.description());
  };
  for (const auto& arg : op.input_arg()) {
    add_arg(arg, api.add_in_arg());
    api.add_arg_order(arg.name());
  }
  for (const auto& arg : op.output_arg()) add_arg(arg, api.add_out_arg());
  for (const auto& attr : op.attr()) {
    auto* to = api.add_attr();
    to->set_name(attr.name());
    to->set_rename_to(attr.name());
    if (attr.has_default_value()) {
      *to->mutable_default_value() = attr.default_value();
    }
    to->set_description(attr.description());
  }
  api.set_summary(op.summary());
  api.set_description(op.description());
  return api;
}

StatusOr<TF_ApiDefMap*> NewMap(const TF_Buffer* ops) {
  HR_RETURN_IF_ERROR(NotNull(ops, "op_list_buffer"));
  tensorflow::OpList list;
  HR_RETURN_IF_ERROR(ReadProto(ops->data, ops->length, "OpList", &list));
  auto map = std::make_unique<TF_ApiDefMap>();
  for (const auto& op : list.op()) map->by_op[op.name()] = ApiDefOf(op);
  return map.release();
}

void AppendQuoted(StringView line, bool first, std::string* out) {
  out->append(first ? "\"" : "\"\\n");
  for (char c : line) {
    if (c == '"' || c == '\\') out->push_back('\\');
    out->push_back(c);
  }
  out->append("\"\n");
}

// Files of ApiDefs may write a text of several lines as
//   field: <<END
//   ...
//   END
// which protobuf's text form does not know.
StatusOr<std::string> WithoutHereTexts(StringView text) {
  std::string out;
  StringView end;      // of the text that a line is in; empty: of none
  bool first = false;  // line of it
  for (StringView line : absl::StrSplit(text, '\n')) {
    if (!end.empty()) {
      // Upstream takes the mark at the beginning of a line alone.
      if (line.substr(0, end.size()) == end) {
        absl::StrAppend(&out, line.substr(end.size()), "\n");
        end = {};
      } else {
        AppendQuoted(line, first, &out);
        first = false;
      }
      continue;
    }
    const size_t mark = line.find("<<");
    const size_t colon = line.find(':');
    if (mark == StringView::npos || colon == StringView::npos || colon > mark ||
        line.substr(0, mark).find('"') != StringView::npos) {
      absl::StrAppend(&out, line, "\n");
      continue;
    }
    end = line.substr(mark + 2);
    first = true;
    absl::StrAppend(&out, line.substr(0, mark), "\"\"\n");
  }
  if (!end.empty()) {
    return InvalidArgument("a text that begins with <<", end, " does not end");
  }
  return out;
}

template <typename List, typename Merge>
Status MergeByName(const List& from, List* to, StringView op, StringView what,
                   Merge&& merge) {
  for (const auto& one : from) {
    auto it = std::find_if(to->begin(), to->end(), [&](const auto& have) {
      return have.name() == one.name();
    });
    if (it == to->end()) {
      return InvalidArgument("ApiDef of ", op, " has no ", what, " '",
                             one.name(), "'");
    }
    merge(one, &*it);
  }
  return OkStatus();
}

Status MergeApiDef(const tensorflow::ApiDef& from, tensorflow::ApiDef* to) {
  const std::string& op = to->graph_op_name();
  if (from.visibility() != tensorflow::ApiDef::DEFAULT_VISIBILITY) {
    to->set_visibility(from.visibility());
  }
  if (from.endpoint_size() > 0) {
    *to->mutable_endpoint() = from.endpoint();
  }
  const auto merge_arg = [](const tensorflow::ApiDef::Arg& a,
                            tensorflow::ApiDef::Arg* b) {
    if (!a.rename_to().empty()) b->set_rename_to(a.rename_to());
    if (!a.description().empty()) b->set_description(a.description());
  };
  HR_RETURN_IF_ERROR(
      MergeByName(from.in_arg(), to->mutable_in_arg(), op, "input", merge_arg));
  HR_RETURN_IF_ERROR(MergeByName(from.out_arg(), to->mutable_out_arg(), op,
                                 "output", merge_arg));
  HR_RETURN_IF_ERROR(MergeByName(
      from.attr(), to->mutable_attr(), op, "attribute",
      [](const tensorflow::ApiDef::Attr& a, tensorflow::ApiDef::Attr* b) {
        if (!a.rename_to().empty()) b->set_rename_to(a.rename_to());
        if (a.has_default_value()) {
          *b->mutable_default_value() = a.default_value();
        }
        if (!a.description().empty()) b->set_description(a.description());
      }));
  if (from.arg_order_size() > 0) *to->mutable_arg_order() = from.arg_order();
  if (!from.summary().empty()) to->set_summary(from.summary());
  if (!from.description().empty()) to->set_description(from.description());
  if (!from.description_prefix().empty()) {
    to->set_description(
        absl::StrCat(from.description_prefix(), "\n", to->description()));
  }
  if (!from.description_suffix().empty()) {
    to->set_description(
        absl::StrCat(to->description(), "\n", from.description_suffix()));
  }
  if (from.deprecation_version() != 0) {
    to->set_deprecation_version(from.deprecation_version());
  }
  if (!from.deprecation_message().empty()) {
    to->set_deprecation_message(from.deprecation_message());
  }
  return OkStatus();
}

Status PutApiDefs(TF_ApiDefMap* map, const char* text, size_t length) {
  HR_RETURN_IF_ERROR(NotNull(map, "api_def_map"));
  HR_RETURN_IF_ERROR(NotNull(text, "text"));
  if (map->asked) {
    return FailedPrecondition(
        "TF_ApiDefMapPut cannot be called after TF_ApiDefMapGet has been "
        "called.");
  }
  HR_ASSIGN_OR_RETURN(const std::string plain,
                      WithoutHereTexts(StringView(text, length)));
  tensorflow::ApiDefs read;
  if (auto error = ReadProtoText(plain, &read)) {
    return InvalidArgument("Failed to parse ApiDefs: line ", error->line,
                           ", column ", error->column, ": ", error->message);
  }
  for (const auto& api : read.op()) {
    auto it = map->by_op.find(api.graph_op_name());
    // As upstream: files may speak of ops that the list leaves out.
    if (it == map->by_op.end()) continue;
    HR_RETURN_IF_ERROR(MergeApiDef(api, &it->second));
  }
  return OkStatus();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

TF_Buffer* TF_GetAllOpList() {
  return capi::OrElse<TF_Buffer*>(nullptr, [] {
    headrace::StatusOr<TF_Buffer*> list = capi::AllOpDefs();
    return list.ok() ? *list : nullptr;
  });
}

TF_ApiDefMap* TF_NewApiDefMap(TF_Buffer* op_list_buffer, TF_Status* status) {
  return capi::OrNull(status, [&] { return capi::NewMap(op_list_buffer); });
}

void TF_DeleteApiDefMap(TF_ApiDefMap* apimap) { delete apimap; }

void TF_ApiDefMapPut(TF_ApiDefMap* api_def_map, const char* text,
                     size_t text_len, TF_Status* status) {
  capi::Into(status,
             [&] { return capi::PutApiDefs(api_def_map, text, text_len); });
}

TF_Buffer* TF_ApiDefMapGet(TF_ApiDefMap* api_def_map, const char* name,
                           size_t name_len, TF_Status* status) {
  return capi::OrNull(status, [&]() -> headrace::StatusOr<TF_Buffer*> {
    HR_RETURN_IF_ERROR(capi::NotNull(api_def_map, "api_def_map"));
    HR_RETURN_IF_ERROR(capi::NotNull(name, "name"));
    api_def_map->asked = true;
    auto it = api_def_map->by_op.find(std::string(name, name_len));
    // Nothing, which is no error.
    if (it == api_def_map->by_op.end()) return nullptr;
    return capi::NewBuffer(it->second);
  });
}
