"""Calls tools of `pmc mcp` with the official Python SDK: client.py FOLDER CALLS PMC ARGUMENT...

CALLS is a JSON list of [tool, arguments]. Prints a JSON object with the protocol version, the tools, and the result
of each call.
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client


def field(value, *names):
    """Returns the first of these attributes: version 2 of the SDK renamed them."""
    return next(getattr(value, name) for name in names if hasattr(value, name))


async def main():
    folder, calls, command, *args = sys.argv[1:]
    server = StdioServerParameters(command=command, args=args, env=dict(os.environ), cwd=folder)
    async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
        greeting = await session.initialize()
        tools = (await session.list_tools()).tools
        results = []
        for tool, arguments in json.loads(calls):
            result = await session.call_tool(tool, arguments)
            results.append({
                "text": result.content[0].text,
                "document": field(result, "structured_content", "structuredContent"),
                "is_error": field(result, "is_error", "isError"),
            })
        print(json.dumps({
            "version": field(greeting, "protocol_version", "protocolVersion"),
            "tools": [tool.name for tool in tools],
            "results": results,
        }))


asyncio.run(main())
