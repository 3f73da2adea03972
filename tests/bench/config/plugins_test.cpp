#include "bench/config/plugins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "bench/config/grid.h"
#include "bench/config/options.h"
#include "bench/config/row_name.h"
#include "models/registry/named_entries.h"
#include "reports/build_information.h"
#include "tests/bench/error_of.h"
#include "tests/bench/example_catalogue.h"
#include "tests/temporary_folder.h"

namespace stratagem::bench::plugins_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PluginsTest : public testing::Test {
 protected:
  std::string refusal_of(const std::string& content) const {
    std::ofstream(path_, std::ios::binary) << content;
    const std::string message = error_of([&] { load_plugins({"--plugin", path_}); });
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_THAT(message, HasSubstr("--plugin " + path_ + ": "));
    EXPECT_THAT(loaded_plugins(), IsEmpty());
    return message;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "plugin";
};

TEST_F(PluginsTest, AreNamedInBothSpellingsUpToTheDashes) {
  EXPECT_THAT(requested_plugins({"--plugin", "a.so", "x", "--plugin=b.so", "--", "--plugin=c.so"}),
              ElementsAre("a.so", "b.so"));
  EXPECT_THAT(requested_plugins({"--plugins", "a.so", "--plugin"}), IsEmpty());
}

TEST_F(PluginsTest, AreNamedInAConfigFileUnlessTheCommandLineDoes) {
  std::ofstream(path_) << R"({"plugin": ["a.so", "b.so"], "split_size": 4})";
  EXPECT_THAT(requested_plugins({"--config", path_}), ElementsAre("a.so", "b.so"));
  EXPECT_THAT(requested_plugins({"--config=" + path_, "--plugin", "c.so"}), ElementsAre("c.so"));
  std::ofstream(path_) << R"({"plugin": "a.so"})";
  EXPECT_THAT(requested_plugins({"--config", path_}), ElementsAre("a.so"));
  std::ofstream(path_) << R"({"plugin": 7})";
  EXPECT_THAT(error_of([&] {
                requested_plugins({"--config", path_});
              }),
              HasSubstr("plugin: expected"));
}

TEST_F(PluginsTest, AreLeftOutForProgramsThatKnowNone) {
  EXPECT_THAT(without_plugins({"a", "--plugin", "x", "b", "--plugin=y", "--", "--plugin", "z"}),
              ElementsAre("a", "b", "--", "--plugin", "z"));
}

TEST_F(PluginsTest, WhatIsNoneIsRefused) {
  EXPECT_THAT(refusal_of("some other file"), HasSubstr("not a plug-in"));
  EXPECT_THROW(load_plugins({"--plugin", path_ + ".missing"}), std::system_error);
}

TEST_F(PluginsTest, AnotherVersionIsRefusedBeforeItIsLoaded) {
  const std::string message = refusal_of("..." + reports::plugin_interface_mark() +
                                         "stratagem 0.0.1" + std::string(1, '\0'));
  EXPECT_THAT(message, HasSubstr("built for stratagem 0.0.1, but this is " +
                                 reports::build_information().plugin_interface));
}

TEST_F(PluginsTest, WhatTheLoaderRefusesIsToldInOneLine) {
  const std::string right = reports::build_information().plugin_interface;
  EXPECT_THAT(refusal_of(reports::plugin_interface_mark() + right + std::string(1, '\0')),
              HasSubstr("cannot be loaded: "));
}

TEST_F(PluginsTest, ARowNeedsThoseItWasMadeWith) {
  require_plugins({});
  EXPECT_THAT(error_of([] { require_plugins({"libmine.so@1"}); }),
              HasSubstr("the row needs \"libmine.so@1\", but this process has loaded \"\""));
}

TEST_F(PluginsTest, EveryRowNamesThem) {
  Catalogue catalogue = example_catalogue();
  catalogue.plugins = {"libmine.so@1", "lib+yours.so@2"};
  const Config row = make_grid({}, catalogue).front();
  EXPECT_EQ(row.plugin, catalogue.plugins);
  EXPECT_EQ(value_text(config_from_json(to_json(row)), find_option("plugin")),
            "libmine.so@1+lib+yours.so@2");
  catalogue.plugins = {"libmine.so@3"};
  const Config other = make_grid({}, catalogue).front();
  EXPECT_EQ(row_name(row, catalogue), row_name(other, catalogue));
  EXPECT_NE(to_json(row), to_json(other));
}

TEST(WorkerCommand, IsThisProgram) {
  EXPECT_THAT(worker_command(), ElementsAre("/proc/self/exe", "worker"));
}

// Two files of this tree that register one name.
TEST(Registrations, OfThisBuildAreDistinct) {
  EXPECT_THAT(models::registration_errors(), IsEmpty());
}

}  // namespace
}  // namespace stratagem::bench::plugins_test
