// Annotations that HLO text writes in a notation of its own: shardings, metadata, origins and the like.
// Each function appends the text between the braces of `name={...}`, braces included.
#pragma once

#include <string>

#include "compiler/proto/wire.h"
#include "layout/shape.h"

namespace hlojit::proto {

/// OpSharding: `{devices=[2,1]<=[2]}`, `{{replicated}, {manual}}`.
void append_sharding(const Message& proto, std::string& out);
/// FrontendAttributes: `{a="b",c={d}}`.
void append_frontend_attributes(const Message& proto, std::string& out);
/// OpMetadata: `{op_name="f" source_line=3}`; nothing if it says nothing.
bool append_metadata(const Message& proto, std::string& out);
/// StatisticsViz: `{visualizing_index=0,a=1.5}`; nothing if there are none.
bool append_statistics(const Message& proto, std::string& out);
/// ResultAccuracy: `{mode=highest}`, `{tolerance={atol=0.5,rtol=0,ulps=1}}`; nothing for the default.
bool append_result_accuracy(const Message& proto, std::string& out);
/// OriginalValue of an instruction of `shape`: `{{"p" {0}}}`, `{({"a"}, {"b"})}`.
bool append_origin(const Message& proto, const Shape& shape, std::string& out);
/// A value as it stands if it is one pair of braces, else quoted.
void append_braces_or_quoted(std::string_view text, std::string& out);

}  // namespace hlojit::proto
