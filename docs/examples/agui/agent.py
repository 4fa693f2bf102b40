"""An agent of a Pontoon host that speaks AG-UI, by way of Pydantic AI."""
import os

import uvicorn
from pydantic_ai import Agent
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.routing import Route

# "test" needs no network: it calls each tool, and says what they gave.
agent = Agent(os.environ.get("MODEL", "test"))


@agent.tool_plain
def room_temperature() -> str:
    return "21 degrees"


async def run(request):
    return await AGUIAdapter.dispatch_request(request, agent=agent)


host, port = os.environ.get("LISTEN", "127.0.0.1:9001").rsplit(":", 1)
uvicorn.run(Starlette(routes=[Route("/", run, methods=["POST"])]), host=host, port=int(port), log_level="warning")
