"""Reads OTLP profiles with the official types. `sums` prints JSON, `structure` prints the messages as text."""
import json
import sys
from collections import Counter

from google.protobuf import text_format
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData


def unknown_fields(message):
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type is not None:
            values = value if hasattr(value, "__len__") and not hasattr(value, "ListFields") else [value]
            count += sum(unknown_fields(one) for one in values)
    return count


def value_of(attribute):
    return getattr(attribute.value, attribute.value.WhichOneof("value"))


def sums(data):
    """Checks the rules of the format and returns sums."""
    tables = data.dictionary
    strings = tables.string_table
    for field in tables.DESCRIPTOR.fields:
        table = getattr(tables, field.name)
        zero = "" if field.name == "string_table" else type(table[0])()
        assert table[0] == zero, field.name
        entries = [one if field.name == "string_table" else one.SerializeToString() for one in table]
        assert len(set(entries)) == len(entries), f"an entry of {field.name} is repeated"

    def attributes(indices):
        pairs = [(strings[tables.attribute_table[at].key_strindex], value_of(tables.attribute_table[at])) for at in indices]
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    (resource,) = data.resource_profiles
    (scope,) = resource.scope_profiles
    profiles = []
    for profile in scope.profiles:
        self_sums, total_sums, shapes, threads = Counter(), Counter(), set(), Counter()
        count, value, stacks = 0, 0, []
        for sample in profile.samples:
            times, values = sample.timestamps_unix_nano, sample.values
            end = profile.time_unix_nano + profile.duration_nano
            assert all(profile.time_unix_nano <= time < end for time in times)
            assert not times or not values or len(times) == len(values)
            shapes.add(("times" if times else "") + ("values" if values else ""))
            locations = [tables.location_table[at] for at in tables.stack_table[sample.stack_index].location_indices]
            names = [strings[tables.function_table[line.function_index].name_strindex] for one in locations for line in one.lines]
            weight = sum(values) if values else len(times)
            count, value = count + len(times), value + sum(values)
            self_sums[names[0]] += weight
            for name in set(names):
                total_sums[name] += weight
            threads[attributes(sample.attribute_indices)["thread.name"]] += weight
            stacks.append(names)
        profiles.append({
            "type": [strings[profile.sample_type.type_strindex], strings[profile.sample_type.unit_strindex]],
            "period_type": [strings[profile.period_type.type_strindex], strings[profile.period_type.unit_strindex]],
            "period": profile.period,
            "attributes": attributes(profile.attribute_indices),
            "time": profile.time_unix_nano,
            "duration": profile.duration_nano,
            "shapes": sorted(shapes),
            "times": count,
            "values": value,
            "self": self_sums,
            "total": total_sums,
            "threads": threads,
            "samples": len(profile.samples),
            "stacks": stacks,
        })
    mappings = {}
    for mapping in tables.mapping_table[1:]:
        assert mapping.memory_start < mapping.memory_limit
        mappings[strings[mapping.filename_strindex]] = attributes(mapping.attribute_indices)
    for location in tables.location_table[1:]:
        mapping = tables.mapping_table[location.mapping_index]
        assert location.mapping_index == 0 or mapping.memory_start <= location.address < mapping.memory_limit
    return {
        "unknown": unknown_fields(data),
        "resource": {one.key: one.value.string_value for one in resource.resource.attributes},
        "scope": [scope.scope.name, {one.key: one.value.string_value for one in scope.scope.attributes}],
        "profiles": profiles,
        "mappings": mappings,
        "lines": [len(one.lines) for one in tables.location_table],
        "frame_types": sorted({attributes(one.attribute_indices).get("profile.frame.type", "") for one in tables.location_table[1:]}),
    }


def structure(data):
    """Returns the messages as text, with times since the first one and without the version of pmc."""
    for resource in data.resource_profiles:
        for scope in resource.scope_profiles:
            scope.scope.version = "VERSION"
            for profile in scope.profiles:
                begin, profile.time_unix_nano = profile.time_unix_nano, 0
                for sample in profile.samples:
                    sample.timestamps_unix_nano[:] = [time - begin for time in sample.timestamps_unix_nano]
    return text_format.MessageToString(data)


mode, *paths = sys.argv[1:]
for path in paths:
    with open(path, "rb") as file:
        content = file.read()
    message = ProfilesData.FromString(content)
    request = ExportProfilesServiceRequest.FromString(content)
    assert request.SerializeToString() == message.SerializeToString()
    print(json.dumps(sums(message)) if mode == "sums" else structure(message))
