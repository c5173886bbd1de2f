#include "serving/manager/labels.h"

#include <gtest/gtest.h>

namespace headrace::serving {
namespace {

Status NotAvailable(int version) {
  return FailedPrecondition("Request to assign label to version ", version,
                            " of model m, which is not currently available "
                            "for inference");
}

TEST(ModelLabels, MustBeOfVersionsThatAreAvailable) {
  const Labels kNone;
  const struct {
    const char* why;
    Labels wanted, current;
    bool allow;
    int refused;  // version; 0: none
  } kRows[] = {
      {"no labels", kNone, kNone, false, 0},
      {"of an available one", {{"a", 1}}, kNone, false, 0},
      {"two of one version", {{"a", 1}, {"b", 1}}, kNone, false, 0},
      {"new", {{"a", 3}}, kNone, false, 3},
      {"new, with the flag", {{"a", 3}}, kNone, true, 0},
      {"stays", {{"a", 3}}, {{"a", 3}}, false, 3},
      {"stays, with the flag", {{"a", 3}}, {{"a", 3}}, true, 0},
      {"moves", {{"a", 2}}, {{"a", 1}}, false, 0},
      {"moves to one not there", {{"a", 3}}, {{"a", 1}}, false, 3},
      {"the same, with the flag", {{"a", 3}}, {{"a", 1}}, true, 3},
      {"one of two is refused", {{"a", 1}, {"b", 4}}, kNone, false, 4},
      {"dropped", kNone, {{"a", 3}}, false, 0},
  };
  const auto available = [](const std::string& model, int64_t version) {
    return model == "m" && (version == 1 || version == 2);
  };
  for (const auto& row : kRows) {
    const Status s = CheckLabels({{"m", row.wanted}}, {{"m", row.current}},
                                 row.allow, available);
    EXPECT_EQ(s, row.refused == 0 ? OkStatus() : NotAvailable(row.refused))
        << row.why;
  }
}

TEST(ModelLabels, AreThoseOfTheConfig) {
  tensorflow::serving::ModelServerConfig config;
  auto* model = config.mutable_model_config_list()->add_config();
  model->set_name("m");
  (*model->mutable_version_labels())["a"] = 4;
  config.mutable_model_config_list()->add_config()->set_name("n");
  EXPECT_EQ(LabelsOf(config), (LabelsByModel{{"m", {{"a", 4}}}}));
}

}  // namespace
}  // namespace headrace::serving
